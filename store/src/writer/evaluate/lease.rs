//! Decides who holds a lease: one attempt, with the token of its grant.

use std::sync::Arc;

use ropewalk_schemas::RepoPath;
use ropewalk_schemas::lease::{Lease, LeaseState};

use super::{Draft, FinalRow, RowId};
use crate::change_set::{LeaseAction, Row};
use crate::error::CommitError;
use crate::record::Record;

impl Draft<'_> {
    fn current_lease(&self, id: &RowId) -> Option<Lease> {
        let written = self.own.rows.get(id).or(self.earlier.rows.get(id));
        let body = match written {
            Some(FinalRow::Written { row, .. }) => Some(&row.body),
            Some(FinalRow::Deleted) => None,
            None => self.loaded.rows.get(id)?.body.as_ref(),
        };
        serde_json::from_str(body?).ok()
    }

    pub(super) fn grant(&mut self, asked: &Lease) -> Result<(), CommitError> {
        let id = (Lease::TABLE.name, asked.key());
        let held = self.current_lease(&id).filter(|lease| {
            lease.state == LeaseState::Granted && lease.holder.attempt != asked.holder.attempt
        });
        if let Some(lease) = held {
            return Err(CommitError::Held {
                path: asked.path.clone(),
                holder: Box::new(lease.holder),
            });
        }
        let last = self.earlier.token.unwrap_or(self.loaded.token);
        let token = *self.own.token.get_or_insert(last + 1);
        let granted = Lease {
            token,
            state: LeaseState::Granted,
            ..asked.clone()
        };
        self.write_lease(id, &granted)
    }

    pub(super) fn lease(
        &mut self,
        path: &RepoPath,
        token: i64,
        action: LeaseAction,
    ) -> Result<(), CommitError> {
        let id = (Lease::TABLE.name, path.key());
        let mut lease = self
            .current_lease(&id)
            .filter(|lease| lease.state == LeaseState::Granted && lease.token == token)
            .ok_or_else(|| CommitError::Fenced {
                path: path.clone(),
                token,
            })?;
        match action {
            LeaseAction::Fence => return Ok(()),
            LeaseAction::Renew => lease.renewals += 1,
            LeaseAction::Release => lease.state = LeaseState::Released,
            LeaseAction::Expire => lease.state = LeaseState::Expired,
            LeaseAction::Revoke => lease.state = LeaseState::Revoked,
        }
        self.write_lease(id, &lease)
    }

    fn write_lease(&mut self, id: RowId, lease: &Lease) -> Result<(), CommitError> {
        let row = Row::of(lease).map_err(|error| CommitError::Unwritable {
            table: id.0,
            key: id.1.clone(),
            reason: error.to_string(),
        })?;
        let before = self.version_before(&id);
        self.write(Lease::TABLE, id, before, Arc::new(row));
        Ok(())
    }
}
